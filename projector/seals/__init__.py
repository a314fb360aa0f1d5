"""Where the seals of days go beside the stream, so that a stream that was written anew shows."""
