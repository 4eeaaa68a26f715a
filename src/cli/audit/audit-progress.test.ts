import assert from 'node:assert/strict';
import { it } from 'node:test';
import { ProgressText } from './audit-progress.ts';

const TYPE = {
  group: 'apps',
  version: 'v1',
  resource: 'deployments',
  kind: 'Deployment',
  namespaced: true,
  singular: 'deployment',
  shortNames: [],
  categories: [],
  verbs: ['list'],
  subresources: [],
};
const listing = { type: TYPE, policies: [] };

it('the progress of an audit has rate and time left, for each kind from its start', () => {
  let now = 5_000;
  const text = new ProgressText(() => now);
  assert.equal(text.of({ listing, judged: 0 }), 'auditing deployments.apps');
  now += 100;
  assert.equal(text.of({ listing, judged: 250, remaining: 9_750 }), 'auditing deployments.apps: 250 of 10,000');
  now += 1_900;
  const later = text.of({ listing, judged: 4_000, remaining: 6_000 });
  assert.equal(later, 'auditing deployments.apps: 4,000 of 10,000 (2,000/s, 3 s left)');
  now += 2_000;
  assert.equal(text.of({ listing, judged: 10_000 }), 'auditing deployments.apps: 10,000 (2,500/s)');
  assert.equal(text.of({ listing, judged: 0 }), 'auditing deployments.apps');
});
