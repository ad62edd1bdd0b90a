import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

/** Everything in a directory: kind, mode and owner of each name, and what it holds. Equal when nothing was changed. */
export function treeOf(dir: string): Readonly<Record<string, string>> {
  const tree: Record<string, string> = {};
  const walk = (at: string, name: string) => {
    const stat = lstatSync(at);
    const what = `${stat.mode.toString(8)} ${stat.uid}`;
    if (stat.isSymbolicLink()) tree[name] = `${what} -> ${readlinkSync(at)}`;
    else if (stat.isFile()) tree[name] = `${what} ${readFileSync(at).toString('base64')}`;
    else tree[name] = what;
    if (stat.isDirectory()) for (const child of readdirSync(at)) walk(join(at, child), join(name, child));
  };
  walk(dir, '.');
  return tree;
}
