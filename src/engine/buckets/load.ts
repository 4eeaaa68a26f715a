import { createRequire } from 'node:module';
import type * as admission from './admit.ts';
import type * as policyTable from './policy-table.ts';

const require = createRequire(import.meta.url);
const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';

/** What evaluates reviews of buckets. */
export interface Buckets {
  readonly admit: typeof admission.admit;
  readonly PolicyTable: typeof policyTable.PolicyTable;
}

/** Loaded when it is asked for: it takes what knows of Kubernetes' kinds, and most servers are asked by policy only. */
export function loadBuckets(): Buckets {
  const { admit } = require(`./admit.${extension}`) as typeof admission;
  const { PolicyTable } = require(`./policy-table.${extension}`) as typeof policyTable;
  return { admit, PolicyTable };
}
