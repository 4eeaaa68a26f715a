import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ALERTS } from './monitoring-objects.ts';

describe('the alerts', () => {
  it('look at metrics of Portcullis only, also where other programs have metrics of the same name', () => {
    // Names that client-go and controller-runtime give to theirs in every program.
    const shared = /(?:controller_runtime|leader_election|rest_client|workqueue)_[a-z_]+/g;
    const found = ALERTS.flatMap(({ when }) =>
      [...when.matchAll(shared)].map(({ index, 0: name }) => when.slice(index + name.length)),
    );
    assert.ok(found.length > 0);
    for (const rest of found) {
      assert.match(rest, /^\{[^}]*portcullis-controller/);
    }
  });
});
