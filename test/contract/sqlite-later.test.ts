import { tapeStoreContract } from '@tapedeck/tape/store/conformance';
import { expect, test } from 'vitest';
import { laterStore } from '../support/later-store.ts';
import { openStore } from '../support/store.ts';

// A store that answers everything later keeps the contract too.
tapeStoreContract({ test, expect }, () => laterStore(openStore()));
