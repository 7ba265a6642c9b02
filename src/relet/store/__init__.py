"""Where state lives: engines that run the rules inside short transactions."""
