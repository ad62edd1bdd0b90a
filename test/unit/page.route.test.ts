import { expect, test } from 'vitest';
import { addressOf, type Route, routeOf, splitPlace } from '../../packages/cli/ui/src/route.ts';

test.each<readonly [Route, string]>([
  [{ page: 'sessions' }, '#/'],
  [
    { page: 'sessions', find: 'a b&c', kind: 'subagent', sort: 'tokens' },
    '#/?find=a+b%26c&kind=subagent&sort=tokens',
  ],
  [{ page: 'sessions', state: 'open', tree: true, all: true }, '#/?state=open&tree=1&all=1'],
  [{ page: 'graph' }, '#/graph'],
  [{ page: 'graph', session: 'main' }, '#/graph/main'],
  [{ page: 'session', session: 'main' }, '#/main'],
  [{ page: 'session', session: 'main', seq: 42 }, '#/main@42'],
  [{ page: 'session', session: 'a/b@3', seq: 42 }, '#/a%2Fb%403@42'],
  [{ page: 'session', session: 'a@3' }, '#/a%403'],
  [{ page: 'session', session: '100% <b>?#é' }, '#/100%25%20%3Cb%3E%3F%23%C3%A9'],
  [{ page: 'session', session: 'graph' }, '#/%67raph'],
  [{ page: 'session', session: 'check', seq: 1 }, '#/%63heck@1'],
  [{ page: 'seen', session: 'main', seq: 7 }, '#/main@7/seen'],
  [{ page: 'trace', session: 'usage', seq: 7 }, '#/%75sage@7/trace'],
  [{ page: 'diff', a: 'main', b: 'x/y' }, '#/diff/main/x%2Fy'],
  [{ page: 'usage' }, '#/usage'],
  [{ page: 'usage', session: 'main' }, '#/usage/main'],
  [{ page: 'check' }, '#/check'],
])('a route has an address, and an address its route: %j', (route, address) => {
  expect(addressOf(route)).toBe(address);
  expect(routeOf(address)).toEqual(route);
});

test('an address of no page has no route', () => {
  for (const address of [
    '#/a/b',
    '#/main/seen',
    '#/main@x/seen',
    '#/diff/a',
    '#/graph/a/b',
    '#/%E0%A4%A',
    '#/a@1/seen/x',
  ])
    expect(routeOf(address), address).toBeUndefined();
});

test('an address without its beginning is that of the sessions, and unknown choices are left out', () => {
  expect(routeOf('')).toEqual({ page: 'sessions' });
  expect(routeOf('#/?state=bad&sort=x&tree=yes&other=1')).toEqual({ page: 'sessions' });
});

test('a place splits at its last @ before digits', () => {
  expect(splitPlace('main@42')).toEqual(['main', 42]);
  expect(splitPlace('a@b@42')).toEqual(['a@b', 42]);
  expect(splitPlace('a@b')).toEqual(['a@b', undefined]);
  expect(splitPlace('@1')).toEqual(['@1', undefined]);
});
