"""CrowdAgg (Niu et al. 2015): listwise aggregation by expected NDCG or RBP."""
