import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubernetesObject } from '../resources/index.ts';
import { Complaints } from './complaints.ts';
import { parseRolloutAnnotations } from './rollout-settings.ts';

function server(deadline: string, uid = 'u'): KubernetesObject {
  const annotations = { 'portcullis.dev/progress-deadline': deadline };
  return { apiVersion: 'policies.kubewarden.io/v1', kind: 'PolicyServer', metadata: { name: 's', uid, annotations } };
}

describe('Complaints', () => {
  const told: string[] = [];
  const complaints = new Complaints({
    event: ({ kind, metadata }, type, reason, message) =>
      told.push(`${kind}/${metadata.name} ${type} ${reason} ${message}`),
  });
  const look = (object: KubernetesObject): number => {
    const before = told.length;
    complaints.about(object, parseRolloutAnnotations(object.metadata.annotations).problems);
    return told.length - before;
  };

  it('tells of an annotation once, on the object that has it', () => {
    assert.deepEqual([look(server('soon')), look(server('soon'))], [1, 0]);
    assert.match(
      told[0] ?? '',
      /^PolicyServer\/s Warning InvalidAnnotation annotation portcullis\.dev\/progress-deadline: expected a duration.*, got "soon"; it is taken as absent$/,
    );
  });

  it('tells again when it says something else that is wrong, or was right meanwhile', () => {
    assert.deepEqual([look(server('late')), look(server('5m')), look(server('late'))], [1, 0, 1]);
  });

  it('tells of one of the same name that was made anew', () => {
    assert.equal(look(server('late', 'another')), 1);
    complaints.forget(server('late', 'another'));
    assert.equal(look(server('late', 'another')), 1);
  });
});
