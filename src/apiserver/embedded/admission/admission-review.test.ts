import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { isJsonObject } from '../../../resources/index.ts';
import type { JsonObject, JsonValue } from '../../../resources/index.ts';
import { ListedState } from '../testing/listed-state.ts';
import { readResponse, WebhookResponseError } from './admission-review.ts';
import { reviewJson } from './review-json.ts';
import { MAX_WARNINGS_LENGTH, TRUNCATED_WARNING_LENGTH, WarningLimit } from './warning-limit.ts';
import { deniedError } from './webhook-error.ts';
import { endpointOf } from './webhook-target.ts';
import { webhooksOf } from './webhook.ts';

const UID = 'the-uid';
const answer = (response: object): JsonObject => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  response: { uid: UID, ...response },
});

describe('answers to reviews', () => {
  it('are parsed, or refused with the reason', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        let review: JsonObject;
        try {
          review = reviewJson(text);
        } catch (error) {
          return error instanceof Error && error.message.startsWith("couldn't get version/kind; json parse error: ");
        }
        try {
          readResponse('mutating', 'v1', UID, review);
          return false;
        } catch (error) {
          return error instanceof WebhookResponseError;
        }
      }),
    );
  });

  it('allow only with `allowed: true`', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (allowed) => {
        const { isAllowed } = readResponse('validating', 'v1', UID, answer({ allowed }));
        return isAllowed === (allowed === true);
      }),
    );
  });

  it('refuse with any status as an error of the client', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.integer(), (status, code) => {
        const value = isJsonObject(status) ? { ...status, code } : (status as JsonValue);
        const error = deniedError('w', value);
        return error.code >= 400 && error.toStatus().status === 'Failure' && error.message.includes('"w" denied');
      }),
    );
  });

  it('of version v1beta1 need not say whose they are', () => {
    assert.ok(readResponse('mutating', 'v1beta1', UID, { response: { allowed: true } }).isAllowed);
  });
});

describe('webhooks of configurations', () => {
  it('are read from anything', () => {
    const state = new ListedState();
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (webhooks, clientConfig) => {
        const objects = [webhooks, [{ name: 'x', clientConfig, rules: webhooks }]].map((one) => ({
          apiVersion: 'admissionregistration.k8s.io/v1',
          kind: 'ValidatingWebhookConfiguration',
          metadata: { name: 'c' },
          webhooks: one,
        }));
        for (const { target } of webhooksOf('validating', objects)) {
          try {
            endpointOf(target, state, undefined).address();
          } catch (error) {
            assert.ok(error instanceof Error && error.name === 'Error', String(error));
          }
        }
      }),
    );
  });

  it('have names of their own, though names may repeat', () => {
    const hooks = [{ name: 'a' }, { name: 'b' }, { name: 'a' }];
    const configuration = { apiVersion: 'v1', kind: 'X', metadata: { name: 'c' }, webhooks: hooks };
    assert.deepEqual(
      webhooksOf('mutating', [configuration]).map(({ id }) => id),
      ['c/a/0', 'c/b/0', 'c/a/1'],
    );
  });
});

describe('warnings', () => {
  it('are passed on up to a limit', () => {
    const passed: string[] = [];
    const limit = new WarningLimit((text) => passed.push(text));
    limit.add('x'.repeat(MAX_WARNINGS_LENGTH - 300));
    limit.add('y'.repeat(400));
    limit.add('z'.repeat(400));
    limit.add('short');
    limit.add('short');
    limit.add('a\r\nheader: x');
    assert.deepEqual(
      passed.map(({ length }) => length),
      [MAX_WARNINGS_LENGTH - 300, TRUNCATED_WARNING_LENGTH, 5],
    );
  });
});
