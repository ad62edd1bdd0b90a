import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { root } from '../support/imports.ts';

const dir = join(root, 'packages/cli/ui-dist');
const asset = (name: string) => readFileSync(join(dir, name), 'utf8');

test('the page is three files, of at most 300 KB when they are compressed', () => {
  expect(readdirSync(dir).toSorted()).toEqual(['index.html', 'page.css', 'page.js']);
  const sizes = readdirSync(dir).map((name) => gzipSync(asset(name)).length);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(300_000);
});

test('the package of the command contains it', () => {
  const { files } = JSON.parse(readFileSync(join(root, 'packages/cli/package.json'), 'utf8'));
  expect(files).toContain('ui-dist');
});

test('its HTML has neither code nor style, and names its own files alone', () => {
  const html = asset('index.html');
  expect(html).not.toMatch(/<style|\sstyle=|\son[a-z]+=|<script[^>]*>[^<]/);
  const named = Array.from(html.matchAll(/\s(?:src|href)="([^"]+)"/g), ([, address = '']) => address);
  expect(named.filter((address) => !address.startsWith('data:image/svg+xml,')).toSorted()).toEqual([
    './page.css',
    './page.js',
  ]);
});

test('neither its code nor its style names anything to load', () => {
  expect(asset('page.css')).not.toMatch(/url\(|@import/i);
  expect(asset('page.js')).not.toMatch(/\bimport\s*[("'{]/);
});
