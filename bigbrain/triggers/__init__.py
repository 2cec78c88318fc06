"""What makes a brain act on its own: at a time, again and again, when it is called from outside, when it comes up."""
