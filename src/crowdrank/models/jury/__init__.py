"""The jury model: judges who err together, weighed by gold answers or by consistency with themselves."""
