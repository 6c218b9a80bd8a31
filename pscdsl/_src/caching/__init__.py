"""Files that are kept between processes, and where they are kept."""
