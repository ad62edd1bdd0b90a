import { CannotChange } from './cannot-change.ts';
import { fileAt } from './place.ts';

/** What each text has in it that this command wrote for a timer. */
export const ownMark = 'tape import --install --timer';

/**
 * Replaces a text that this command wrote, or that is not there yet, with another one.
 * @throws CannotChange for a text of someone else
 */
export function ownText(text: string): (before: string) => string {
  return (before) => {
    if (before !== '' && !before.includes(ownMark))
      throw new CannotChange('another program or the user wrote it');
    return text;
  };
}

/** Whether this command wrote a file. */
export function isOwnFile(path: string): boolean {
  return fileAt(path).read().includes(ownMark);
}
