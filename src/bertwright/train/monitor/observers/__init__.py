"""Observers: programs that display a training's metrics rows, one file each; used only if a recipe names them."""
