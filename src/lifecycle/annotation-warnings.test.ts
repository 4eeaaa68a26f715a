import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubernetesObject } from '../resources/index.ts';
import { AnnotationWarnings } from './annotation-warnings.ts';
import { parseRolloutAnnotations } from '../rollout/index.ts';

function server(deadline: string, uid = 'u'): KubernetesObject {
  const annotations = { 'portcullis.dev/progress-deadline': deadline };
  return { apiVersion: 'policies.kubewarden.io/v1', kind: 'PolicyServer', metadata: { name: 's', uid, annotations } };
}

describe('AnnotationWarnings', () => {
  const events: string[] = [];
  const warnings = new AnnotationWarnings({
    event: ({ kind, metadata }, type, reason, message) =>
      events.push(`${kind}/${metadata.name} ${type} ${reason} ${message}`),
  });
  const reportOn = (object: KubernetesObject): number => {
    const before = events.length;
    warnings.report(object, parseRolloutAnnotations(object.metadata.annotations).problems);
    return events.length - before;
  };

  it('reports an annotation once, on the object that has it', () => {
    assert.deepEqual([reportOn(server('soon')), reportOn(server('soon'))], [1, 0]);
    assert.match(
      events[0] ?? '',
      /^PolicyServer\/s Warning InvalidAnnotation annotation portcullis\.dev\/progress-deadline: expected a duration.*, got "soon"; the annotation is ignored$/,
    );
  });

  it('reports an annotation again when its invalid value changes, or was valid meanwhile', () => {
    assert.deepEqual([reportOn(server('late')), reportOn(server('5m')), reportOn(server('late'))], [1, 0, 1]);
  });

  it('reports on a new object of the same name', () => {
    assert.equal(reportOn(server('late', 'another')), 1);
    warnings.forget(server('late', 'another'));
    assert.equal(reportOn(server('late', 'another')), 1);
  });
});
