import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The name of a mount point in a directory, by which a later run knows whether its owner still lives. */
export function mountPoint(dir: string, name: string): string {
  return join(dir, `${name}-mount-${process.pid}`);
}

export function unmount(path: string): void {
  if (spawnSync('umount', [path]).status !== 0) spawnSync('umount', ['-l', path]);
}

/** Unmounts what test processes left that were killed and could not. */
export function unmountLeft(): void {
  if (!existsSync('/proc/mounts')) return;
  for (const line of readFileSync('/proc/mounts', 'utf8').split('\n')) {
    const path = line.split(' ')[1] ?? '';
    const owner = /\/tapedeck-\w+\/.*-mount-(\d+)$/.exec(path)?.[1];
    if (owner !== undefined && !existsSync(`/proc/${owner}`)) unmount(path);
  }
}
