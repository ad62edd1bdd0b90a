import { useEffect, useRef } from 'preact/hooks';
import { keysNow } from './keys.ts';

const names: Readonly<Record<string, string>> = {
  ArrowDown: '↓',
  ArrowUp: '↑',
  ArrowLeft: '←',
  ArrowRight: '→',
  Escape: 'Esc',
};

/** The list of the keys that work on this page. */
export function KeyList({ close }: { readonly close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const found = keysNow();
  return (
    <dialog ref={dialog} class="key-list" aria-labelledby="key-list-title" onClose={close}>
      <h2 id="key-list-title">Keys</h2>
      <dl>
        {found.map(({ keys, what }) => (
          <div key={what}>
            <dt>
              {keys.map((key) => (
                <span key={key} class="keys">
                  {key.split(' ').map((part, i) => (
                    <kbd key={i}>{names[part] ?? part}</kbd>
                  ))}
                </span>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
        <div>
          <dt>
            <span class="keys">
              <kbd>Enter</kbd>
            </span>
          </dt>
          <dd>open the row</dd>
        </div>
      </dl>
      <p>
        <button type="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </p>
    </dialog>
  );
}
