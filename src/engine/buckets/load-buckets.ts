import { createRequire } from 'node:module';
import type * as admission from './admit.ts';
import type * as policyTable from './policy-table.ts';
import type * as reviewMatcher from './review-matcher.ts';

const require = createRequire(import.meta.url);
const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';

/** The evaluation of reviews by bucket. */
export interface Buckets {
  readonly admit: typeof admission.admit;
  readonly PolicyTable: typeof policyTable.PolicyTable;
}

/** Loaded on demand: it loads the Kubernetes kinds, and most servers are called by policy only. */
export function loadBuckets(): Buckets {
  const { admit } = require(`./admit.${extension}`) as typeof admission;
  const { PolicyTable } = require(`./policy-table.${extension}`) as typeof policyTable;
  return { admit, PolicyTable };
}

/** Loaded on demand, as {@link loadBuckets}. */
export function loadReviewMatcher(): typeof reviewMatcher.ReviewMatcher {
  return (require(`./review-matcher.${extension}`) as typeof reviewMatcher).ReviewMatcher;
}
