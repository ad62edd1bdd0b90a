/** What opens over the page, and is closed by what is done elsewhere. */
const opened = 'details.legend[open]';

/** Closes what is open over the page: with Escape, and when one goes elsewhere. Returns how it stops. */
export function closeMenus(page: Window): () => void {
  const elsewhere = ({ target }: Event) => {
    for (const menu of page.document.querySelectorAll<HTMLDetailsElement>(opened))
      if (!(target instanceof Node && menu.contains(target))) menu.open = false;
  };
  const leave = (event: KeyboardEvent) => {
    if (event.key !== 'Escape') return;
    for (const menu of page.document.querySelectorAll<HTMLDetailsElement>(opened)) {
      event.preventDefault();
      menu.open = false;
      menu.querySelector('summary')?.focus();
    }
  };
  page.addEventListener('pointerdown', elsewhere);
  page.addEventListener('focusin', elsewhere);
  page.addEventListener('keydown', leave);
  return () => {
    page.removeEventListener('pointerdown', elsewhere);
    page.removeEventListener('focusin', elsewhere);
    page.removeEventListener('keydown', leave);
  };
}
