"""What published leaderboards need besides a ranking: control of covariates, scales, clusters of votes."""
