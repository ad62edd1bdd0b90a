import { options } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

/**
 * What is to be printed, while the page is: a browser that prints says so, and draws what is there when that was heard.
 * So `load` has it when it returns, and it is drawn before the browser goes on.
 */
export function usePrinted<T>(load: () => T): T | undefined {
  const [printed, setPrinted] = useState<T>();
  const last = useRef(load);
  last.current = load;
  useEffect(() => {
    const begin = () => drawnNow(() => setPrinted(last.current()));
    const end = () => setPrinted(undefined);
    addEventListener('beforeprint', begin);
    addEventListener('afterprint', end);
    return () => {
      removeEventListener('beforeprint', begin);
      removeEventListener('afterprint', end);
    };
  }, []);
  return printed;
}

/** Draws what a change needs before it returns; else that would wait for the end of the running code. */
function drawnNow(change: () => void): void {
  const { debounceRendering } = options;
  options.debounceRendering = (draw) => draw();
  try {
    change();
  } finally {
    if (debounceRendering === undefined) delete options.debounceRendering;
    else options.debounceRendering = debounceRendering;
  }
}
