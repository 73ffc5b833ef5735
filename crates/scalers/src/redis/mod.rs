//! redis lists and streams, alone, in clusters and behind sentinels.
