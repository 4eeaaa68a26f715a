import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runningImage } from './running-image.ts';

describe('runningImage', () => {
  for (const image of [
    'ghcr.io/kubewarden/policy-server:v1.30.0',
    'ghcr.io/kubewarden/policy-server',
    'mirror.example.com:5000/proxy/kubewarden/policy-server@sha256:00',
    'kubewarden/policy-server:latest@sha256:00',
    'ghcr.io/kubewarden/controller/policy-server:v1.40.0',
  ]) {
    it(`replaces ${image}`, () => assert.equal(runningImage(image, 'own'), 'own'));
  }
  for (const image of [
    'example.com/portcullis:1',
    'ghcr.io/notkubewarden/policy-server:v1',
    'ghcr.io/kubewarden/policy-server-fork:v1',
    'example.com:5000/policy-server',
    '',
  ]) {
    it(`keeps ${JSON.stringify(image)}`, () => assert.equal(runningImage(image, 'own'), image));
  }
});
