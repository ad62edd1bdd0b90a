import { useEffect, useRef } from 'preact/hooks';

/** A key, or two one after the other, and what it does. */
export interface Key {
  /** As `KeyboardEvent` names it: `j`, `Enter`, `g s`. */
  readonly keys: readonly string[];
  /** For the list of keys. Keys without it do what their names say. */
  readonly what?: string;
  readonly act: (event: KeyboardEvent) => void;
}

/** The keys of the parts that are drawn, the last drawn first. */
const drawn: { readonly read: () => readonly Key[] }[] = [];

/** How long the first of two keys waits for the second, in milliseconds. */
const wait = 1200;

/** Keys work while the part is drawn. */
export function useKeys(keys: readonly Key[]): void {
  const last = useRef(keys);
  last.current = keys;
  useEffect(() => {
    const own = { read: () => last.current };
    drawn.unshift(own);
    return () => void drawn.splice(drawn.indexOf(own), 1);
  }, []);
}

/** The keys that work now, with what they do. */
export function keysNow(): readonly (Key & { readonly what: string })[] {
  return allKeys().flatMap((key) => (key.what === undefined ? [] : [{ ...key, what: key.what }]));
}

/** Listens to the keyboard for all parts. Returns how it stops. */
export function listenToKeys(page: Window): () => void {
  let before: { readonly key: string; readonly at: number } | undefined;
  const listen = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key !== 'Escape' && isTyping(event.target)) return;
    const first = before !== undefined && event.timeStamp - before.at < wait ? `${before.key} ` : '';
    before = undefined;
    const key = keyFor(`${first}${event.key}`) ?? keyFor(event.key);
    if (key !== undefined) {
      event.preventDefault();
      key.act(event);
    } else if (allKeys().some(({ keys }) => keys.some((name) => name.startsWith(`${event.key} `))))
      before = { key: event.key, at: event.timeStamp };
  };
  page.addEventListener('keydown', listen);
  return () => page.removeEventListener('keydown', listen);
}

function keyFor(typed: string): Key | undefined {
  return allKeys().find(({ keys }) => keys.includes(typed));
}

function allKeys(): readonly Key[] {
  return drawn.flatMap(({ read }) => read());
}

/** Whether a key is a letter of a text, or belongs to a control. */
function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, select, textarea, [role=dialog]') !== null;
}
