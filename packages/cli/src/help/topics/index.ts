/**
 * The topics of the help, one file for each: short pages on what several verbs share. The reference of the command and
 * the manual have the same texts. Imports `help`, for the form of a page, and `exit`.
 */
import type { Topic } from '../page.ts';
import { config } from './config.ts';
import { environment } from './environment.ts';
import { exitCodes } from './exit-codes.ts';
import { models } from './models.ts';
import { points } from './points.ts';
import { rules } from './rules.ts';

export const topics: readonly Topic[] = [points, models, config, rules, exitCodes, environment];
