import { tapeStoreContract } from '@tapedeck/tape/store/conformance';
import { expect, test } from 'vitest';
import { openStore } from '../support/store.ts';

tapeStoreContract({ test, expect }, () => openStore());
