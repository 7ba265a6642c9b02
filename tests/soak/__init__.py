"""Work for half an hour under kills and stops, and see that nothing is lost, done twice, or grows."""
