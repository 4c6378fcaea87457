"""Ray tracing of spheres with one lamp, shadows and a floor: where are the spheres in the picture?

For each pixel the nearest intersection of its ray, Lambert's and Phong's light there, and a second ray to the lamp;
A. S. Glassner (ed.), "An introduction to ray tracing", 1989, chapter 2, section 2 for the quadratic equation. What a
pixel shows changes smoothly with the spheres but where an outline passes over it: there the picture jumps, and the
derivative is that of what is seen, as from differences small enough that no outline crosses a pixel.
"""

import argparse

import numpy as np

import fnad

FAR = 1e6


def normalize(vectors):
    return vectors / np.sqrt(np.sum(vectors**2, axis=-1, keepdims=True))


def camera_rays(width, height, eye, view=1.2):
    """Directions through the middle of each pixel, as (height, width, 3)."""
    across = np.linspace(-view, view, width)
    upward = np.linspace(view * height / width, -view * height / width, height)
    directions = np.empty((height, width, 3))
    directions[..., 0] = across
    directions[..., 1] = upward[:, None]
    directions[..., 2] = 2.0
    return np.broadcast_to(eye, directions.shape), normalize(directions)


def hit_sphere(origin, direction, centre, radius):
    """Distance along each ray to the sphere, FAR where it passes by."""
    offset = origin - centre
    half = np.sum(offset * direction, axis=-1)
    discriminant = half**2 - np.sum(offset**2, axis=-1) + radius**2
    root = np.sqrt(np.where(discriminant > 0, discriminant, 1.0))
    near, beyond = -half - root, -half + root
    distance = np.where(near > 1e-4, near, beyond)
    return np.where((discriminant > 0) & (distance > 1e-4), distance, FAR)


def hit_floor(origin, direction, height):
    """Distance along each ray to the floor."""
    slope = direction[..., 1]
    distance = (height - origin[..., 1]) / np.where(slope < -1e-6, slope, -1.0)
    return np.where((slope < -1e-6) & (distance > 1e-4), distance, FAR)


def nearest(origin, direction, scene):
    """Distance to what each ray meets first, and which object that is; the floor comes last."""
    distances = [hit_sphere(origin, direction, c, r) for c, r in zip(scene["centre"], scene["radius"], strict=True)]
    distances.append(hit_floor(origin, direction, -1.0))
    distances = np.stack(distances)
    which = np.argmin(distances, axis=0)
    return np.take_along_axis(distances, which[None], axis=0)[0], which


def shade(origin, direction, scene, lamp):
    """Brightness of each pixel."""
    distance, which = nearest(origin, direction, scene)
    is_hit = distance < FAR
    point = origin + np.where(is_hit, distance, 1.0)[..., None] * direction
    count = len(scene["radius"])
    normal = np.zeros_like(point)
    normal[..., 1] = 1.0
    for i in range(count):
        normal = np.where((which == i)[..., None], (point - scene["centre"][i]) / scene["radius"][i], normal)
    to_lamp = normalize(lamp - point)
    blocked, _ = nearest(point + 1e-3 * normal, to_lamp, scene)
    light = np.maximum(np.sum(normal * to_lamp, axis=-1), 0.0)
    mirrored = 2 * np.sum(normal * to_lamp, axis=-1, keepdims=True) * normal - to_lamp
    gloss = np.maximum(-np.sum(mirrored * direction, axis=-1), 0.0) ** 8
    light[blocked < FAR] = 0.0
    gloss[(blocked < FAR) | (which == count)] = 0.0
    albedo = np.append(scene["albedo"], 0.5)[which]
    return np.where(is_hit, 0.1 + albedo * light + 0.3 * gloss, 0.0)


def render(scene, lamp, width=24, height=16):
    eye = np.array([0.0, 0.3, -4.0])
    origin, direction = camera_rays(width, height, eye)
    return shade(origin, direction, scene, lamp)


def mismatch(scene, lamp, picture):
    height, width = picture.shape
    return np.mean((render(scene, lamp, width, height) - picture) ** 2)


def example_scene():
    centre = np.array([[-0.8, -0.2, 0.5], [0.7, -0.4, -0.2], [0.1, 0.5, 1.5]])
    return {"centre": centre, "radius": np.array([0.8, 0.6, 0.7]), "albedo": np.array([0.8, 0.6, 0.9])}


def main():
    lamp = np.array([2.0, 4.0, -3.0])
    picture = render(example_scene(), lamp)
    for row in picture[:, ::1]:
        print("".join(" .:-=+*#%@"[min(9, int(9 * b))] for b in row))
    scene = example_scene()
    scene["albedo"], lamp = np.full(3, 0.5), np.array([1.5, 4.0, -2.5])
    step = fnad.value_and_grad(mismatch, (0, 1))
    for i in range(31):
        value, (slope, lamp_slope) = step(scene, lamp, picture)
        if i % 10 == 0:
            print(f"step {i:2d}  mismatch {value:.2e}  albedo {scene['albedo'].round(3)}  lamp {lamp.round(2)}")
        scene["albedo"] = scene["albedo"] - 4.0 * slope["albedo"]
        lamp = lamp - 40.0 * lamp_slope


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
