"""Checks EGL and Vulkan: loaders, manifests, devices and one rendered frame each."""
