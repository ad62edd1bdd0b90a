import type { HomeStore } from '@tapedeck/tape';
import { ofStore } from '../imported/of-store.ts';

/** How many edges that no record names this process has made in a store. */
export const concludedIn: (store: HomeStore) => { count: number } = ofStore(() => ({ count: 0 }));
