"""What commits show: lag when they were made, their window, and their pace."""
