"""Writes an environment's frames as an mp4 video, and decodes it once to check it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from olaf import extras
from olaf.errors.outcome import Exit, RunError

FRAMES_PER_S = 30


@dataclass(frozen=True)
class Film:
    """A video that was written and decoded."""

    file: Path
    frames: int
    seconds: float


class Camera:
    """Writes frames into a video as they come."""

    def __init__(self, file: Path) -> None:
        """Check that a video can be written there. Raises RunError, MissingExtraError."""
        extras.need("video", "imageio_ffmpeg", what="--video")
        if file.suffix != ".mp4":
            raise RunError(f"--video {file}: the name of a video ends with .mp4", Exit.USAGE)
        self._file = file
        self._half = file.with_name(f".{file.stem}.part.mp4")
        self.frames_per_s: float = FRAMES_PER_S
        self._writer: Any = None
        self._size = (0, 0)
        self._frames = 0
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._half.touch()
        except OSError as error:
            raise RunError(
                f"--video {file}: cannot write there ({error.strerror})", Exit.USAGE
            ) from None

    def take(self, picture: Any) -> None:
        """Add one frame, ``(height, width, 3)`` bytes."""
        frame = np.ascontiguousarray(picture, np.uint8)
        if frame.ndim != 3 or frame.shape[2] != 3:
            raise RunError(f"--video: the environment drew {frame.shape}, not (height, width, 3)")
        size = (frame.shape[1], frame.shape[0])
        if self._writer is None:
            import imageio_ffmpeg

            self._size = size
            # Every player supports H.264 in yuv420p, which requires even width and height.
            self._writer = imageio_ffmpeg.write_frames(
                str(self._half), size, fps=self.frames_per_s, macro_block_size=2
            )
            self._writer.send(None)
        if size != self._size:
            raise RunError(f"--video: the frames changed their size from {self._size} to {size}")
        self._writer.send(frame)
        self._frames += 1

    def finish(self) -> Film:
        """End the video, decode it once, and give it its name. Raises RunError if it is broken."""
        import imageio_ffmpeg

        if self._writer is None:
            self.drop()
            raise RunError("--video: the environment drew nothing")
        self._writer.close()
        program = imageio_ffmpeg.get_ffmpeg_exe()
        decoded = subprocess.run(
            [program, "-v", "error", "-i", str(self._half), "-map", "0:v:0", "-f", "null", "-"],
            capture_output=True,
            text=True,
            check=False,
        )
        frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(self._half))
        if decoded.returncode or decoded.stderr.strip() or frames != self._frames:
            self.drop()
            said = decoded.stderr.strip() or f"it has {frames} of {self._frames} frames"
            raise RunError(f"--video {self._file}: the video cannot be decoded: {said}")
        self._half.replace(self._file)
        return Film(self._file, frames, float(seconds))

    def drop(self) -> None:
        """Delete an unfinished video."""
        self._half.unlink(missing_ok=True)


def open_display() -> None:
    """Let pygame draw on the display. Raises RunError if there is none.

    `olaf.rl` has told pygame to draw nowhere; another driver set by the user is kept.
    """
    if (os.environ.get("SDL_VIDEODRIVER") or "dummy") != "dummy":
        return
    has_display = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if sys.platform.startswith("linux") and not has_display:
        raise RunError(
            "--render: this machine has no display (neither DISPLAY nor WAYLAND_DISPLAY is set); "
            "--video FILE.mp4 writes a video instead",
            Exit.USAGE,
        )
    os.environ.pop("SDL_VIDEODRIVER", None)
