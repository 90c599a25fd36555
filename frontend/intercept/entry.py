from typing import Any
def intercepted(function: Any, trace: Any) -> Any:
    return function
