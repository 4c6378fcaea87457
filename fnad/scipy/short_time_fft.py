"""scipy.signal.ShortTimeFFT: the transform of a traced signal, which `periodogram`, `welch` and `csd` use."""

from types import SimpleNamespace

from fnad.scipy.rule import body_of

ShortTimeFFT = SimpleNamespace(stft_detrend=body_of("scipy.signal._short_time_fft:ShortTimeFFT.stft_detrend"))
