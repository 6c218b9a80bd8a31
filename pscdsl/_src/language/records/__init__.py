"""Records: classes, instances, containers."""
