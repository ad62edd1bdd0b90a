import { useEffect, useState } from 'preact/hooks';

const query = '(max-width: 720px)';

/** Whether the page is as narrow as that of a telephone. */
export function useNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const changed = () => setNarrow(media.matches);
    media.addEventListener('change', changed);
    return () => media.removeEventListener('change', changed);
  }, []);
  return isNarrow;
}
