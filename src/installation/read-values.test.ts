import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseYaml } from '../values/yaml/index.ts';
import { installValues } from './read-values.ts';

const values = (text: string): ReturnType<typeof installValues> => installValues(parseYaml(text)[0], '1.0.0', 'v.yaml');

describe('values of an installation', () => {
  it('have defaults', () => {
    assert.equal(values('').image, 'portcullis:1.0.0');
    assert.equal(values('controller: {}').controller.replicas, 2);
  });

  it('merge objects as Helm does, and null removes a key', () => {
    const { resources } = values('controller: {resources: {limits: {cpu: null, memory: 1Gi}}}').controller;
    assert.deepEqual(resources, { requests: { cpu: '100m', memory: '192Mi' }, limits: { memory: '1Gi' } });
  });

  it('that do not exist, or have another type, are refused with the expected values', () => {
    for (const [text, message] of [
      ['replicas: 3', /v\.yaml: there is no value replicas; expected one of image, /],
      ['controller: {replica: 3}', /there is no value controller\.replica; expected one of replicas, /],
      ['controller: {replicas: "3"}', /controller\.replicas: expected a whole number from 0, got "3"/],
      ['controller: {logLevel: loud}', /controller\.logLevel: expected one of info, trace, debug, warn, error/],
      ['certificates: {lifetime: 90}', /certificates\.lifetime: expected a text, got 90/],
      ['certificates: {lifetime: soon}', /certificates\.lifetime: expected a text that matches/],
      ['exemptNamespaces: kube-system', /exemptNamespaces: expected a list of texts/],
      ['listenAddress: any', /listenAddress: expected a text that matches/],
      ['controller: 3', /controller: expected a mapping, got 3/],
      ['[]', /expected a mapping of values/],
      ['constructor: {}', /there is no value constructor/],
    ] as const) {
      assert.throws(() => values(text), message, text);
    }
  });

  it('refuse certificates of cert-manager while the controller writes the same Secrets', () => {
    const certManager = { enabled: true };
    assert.throws(
      () => installValues({ certificates: { certManager } }, '1.0.0', 'values.yaml'),
      /certificates\.mode is own/,
    );
    const values = installValues({ certificates: { certManager, mode: 'external' } }, '1.0.0', 'values.yaml');
    assert.equal(values.certificates.certManager.enabled, true);
  });
});
