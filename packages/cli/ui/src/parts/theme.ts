import { useState } from 'preact/hooks';

/** Which colours the page has: those of the system, or always the same. */
export type Theme = 'system' | 'light' | 'dark';

const next: Readonly<Record<Theme, Theme>> = { system: 'light', light: 'dark', dark: 'system' };

const place = 'tapedeck-theme';

/** The colours of the page, and how to change them. */
export function useTheme(): readonly [theme: Theme, turn: () => void] {
  const [theme, setTheme] = useState<Theme>(
    () => (document.documentElement.dataset.theme as Theme | undefined) ?? 'system',
  );
  const turn = () => {
    show(next[theme]);
    keep(next[theme]);
    setTheme(next[theme]);
  };
  return [theme, turn];
}

/** Gives the page the colours that were chosen before. */
export function showKeptTheme(): void {
  try {
    const kept = localStorage.getItem(place);
    if (kept === 'light' || kept === 'dark') show(kept);
  } catch {
    // A page from a file may keep nothing.
  }
}

function show(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function keep(theme: Theme): void {
  try {
    localStorage.setItem(place, theme);
  } catch {
    // As above.
  }
}
