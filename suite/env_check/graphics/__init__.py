"""EGL and Vulkan: loaders, manifests, devices and one frame each."""
