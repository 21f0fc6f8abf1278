"""The formulas, each over one shard of judgments: value, gradient and curvature."""
