import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ALERTS } from './monitoring-objects.ts';

describe('the alerts', () => {
  it('select metrics of Portcullis only, also if other programs have metrics of the same name', () => {
    // Metrics of client-go and controller-runtime have these names in every program.
    const shared = /(?:controller_runtime|leader_election|rest_client|workqueue)_[a-z_]+/g;
    const found = ALERTS.flatMap(({ when }) =>
      [...when.matchAll(shared)].map(({ index, 0: name }) => when.slice(index + name.length)),
    );
    assert.ok(found.length > 0);
    for (const rest of found) {
      assert.match(rest, /^\{[^}]*portcullis-(?:controller|auditor)/);
    }
  });
});
