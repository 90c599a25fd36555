def emit_direct(frame, found, name): raise NotImplementedError
