"""What training on many devices sends and computes, predicted and counted."""
