import { WIDGET_SCHEMA } from '../../../resources/structured-merge/testing/index.ts';
import type { MergedKind } from '../merge-request.ts';

/** A custom kind for tests. */
export const WIDGET: MergedKind = {
  group: 'example.com',
  version: 'v1',
  resource: 'widgets',
  kind: 'Widget',
  schema: () => WIDGET_SCHEMA,
  origin: 'custom',
  hasStatus: true,
};
