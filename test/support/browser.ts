import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import type { CliOptions } from './cli.ts';
import { startUi, type Ui } from './ui.ts';

const program = process.env.CHROMIUM ?? '/usr/bin/chromium';

/** Whether there is no browser to test with, which is said. */
export function skipsBrowsers(what: string): boolean {
  const isMissing = !existsSync(program);
  if (isMissing) console.warn(`skipped ${what}: there is no ${program}`);
  return isMissing;
}

/** A browser for the tests of a file. */
export function browserForTests(isMissing: boolean): () => Browser {
  let browser: Browser | undefined;
  beforeAll(async () => {
    if (!isMissing)
      browser = await chromium.launch({
        executablePath: program,
        // The heap is measured as it is, not in steps.
        args: ['--no-sandbox', '--enable-precise-memory-info'],
        timeout: 110_000,
      });
  }, 120_000);
  afterAll(async () => {
    await browser?.close();
  });
  return () => {
    if (browser === undefined) throw new Error('the browser has not started');
    return browser;
  };
}

/** A page in a browser of its own, and what it did that it should not. */
export interface Watched extends AsyncDisposable {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Every request of the page. */
  readonly requests: string[];
  /** Errors, dialogs, windows that opened, and what the console says that is wrong. */
  readonly faults: string[];
}

export async function watched(browser: Browser, options: BrowserContextOptions = {}): Promise<Watched> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 720 },
    reducedMotion: 'reduce',
    ...options,
  });
  const [requests, faults]: [string[], string[]] = [[], []];
  // What is waited for comes within a second, but for a busy machine.
  context.setDefaultTimeout(90_000);
  context.on('request', (request) => requests.push(request.url()));
  context.on('weberror', (error) => faults.push(String(error.error())));
  context.on('dialog', async (dialog) => {
    faults.push(`dialog ${dialog.message()}`);
    await dialog.dismiss();
  });
  context.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text());
  });
  const page = await context.newPage();
  context.on('page', (opened) => faults.push(`window ${opened.url()}`));
  return {
    ...{ page, context, requests, faults },
    [Symbol.asyncDispose]: async () => await context.close(),
  };
}

/** The page of a home, as its address opened it in a browser. */
export interface Shown extends Watched {
  readonly ui: Ui;
  readonly origin: string;
  /** Goes to a place of the page, such as `#/graph`, and waits for its title. */
  goto(place: string): Promise<void>;
}

export async function shown(
  browser: Browser,
  home: string | Pick<CliOptions, 'env' | 'cwd'>,
  { place = '', ...options }: BrowserContextOptions & { readonly place?: string } = {},
): Promise<Shown> {
  const ui = await startUi([], { ...(typeof home === 'string' ? { home } : home), enter: false });
  const window = await watched(browser, options);
  const { page } = window;
  await page.goto(ui.url + place);
  await page.locator('main h1').waitFor();
  return {
    ...{ ...window, ui, origin: `http://127.0.0.1:${ui.port}` },
    goto: async (to) => {
      await page.evaluate(`location.hash = ${JSON.stringify(to)}`);
      await page.locator('main h1').waitFor();
    },
    [Symbol.asyncDispose]: async () => {
      await window[Symbol.asyncDispose]();
      await ui[Symbol.asyncDispose]();
    },
  };
}

/** Whether the page is wider than its window. */
export async function isWide(page: Page): Promise<boolean> {
  return await page.evaluate<boolean>(
    'document.documentElement.scrollWidth > document.documentElement.clientWidth',
  );
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds on a page that is serious or critical. */
export async function barriers(page: Page): Promise<readonly string[]> {
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(axe);
  // Of what is well it describes one element each: to describe all takes longer than to look at them.
  const { violations } = await page.evaluate<AxeResults>(`axe.run({ resultTypes: ['violations'] })`);
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
