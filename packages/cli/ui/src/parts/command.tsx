import { useRef, useState } from 'preact/hooks';
import type { Command } from '../../../src/page/data.ts';

/** A command to copy: what can be done is done at the command line. */
export function CommandLine({ line, what }: { readonly line: string; readonly what?: string }) {
  const text = useRef<HTMLElement>(null);
  const [said, say] = useState('');
  const copy = async () => {
    say((await isCopied(line, text.current)) ? 'Copied' : 'Select it and press Ctrl+C');
    setTimeout(() => say(''), 2000);
  };
  return (
    <span class="command">
      {what !== undefined && <span class="command-what">{what}</span>}
      <code ref={text}>{line}</code>
      <button type="button" class="copy" onClick={() => void copy()} aria-label={`Copy ${line}`} title="Copy">
        <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
          {said === 'Copied' ? (
            <path d="M3 8.5 6.5 12 13 4.5" />
          ) : (
            <path d="M5.5 5.5h7v8h-7zM3.5 10.5v-8h7" />
          )}
        </svg>
      </button>
      <span role="status" class="unseen">
        {said}
      </span>
    </span>
  );
}

/** What can be done with one thing. */
export function Commands({ commands }: { readonly commands: readonly Command[] }) {
  return (
    <ul class="commands">
      {commands.map(({ what, line }) => (
        <li key={line}>
          <CommandLine what={what} line={line} />
        </li>
      ))}
    </ul>
  );
}

async function isCopied(line: string, element: HTMLElement | null): Promise<boolean> {
  if (await copied(line)) return true;
  if (element !== null) getSelection()?.selectAllChildren(element);
  return false;
}

/** Copies a command, unless there is no clipboard, as on a page from a file: then its text is to be selected. */
export async function copied(line: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(line);
    return true;
  } catch {
    return false;
  }
}
