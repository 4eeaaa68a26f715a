import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject } from '../../values/index.ts';
import type { SettingsVerdict } from '../verdict/guest-verdict.ts';
import { type LookupResult, type ObjectLookup, UnknownObject } from '../review/object-lookup.ts';
import { type EffectiveSettings, ParameterizedSettings, type SettingsResult } from './effective-settings.ts';
import type { ParametersDefinition } from './parameters-definition.ts';

const BY_RESOURCE: ParametersDefinition = {
  from: { resource: { apiVersion: 'example.com/v1', kind: 'ToolProfile', name: 'profile' } },
  notFound: 'Deny',
  onInvalid: 'Deny',
  onRollout: 'Fail',
  overridable: ['uid'],
  settingsExpression: "{'uid': params.spec.uid}",
};
const BY_NAMESPACE: ParametersDefinition = {
  ...BY_RESOURCE,
  from: { namespace: { annotations: ['example.com/uid'], labels: ['tier'] } },
  settingsExpression: "{'uid': int(params.annotations['example.com/uid'])}",
};
const SETTINGS = '{"mode":"strict","uid":0}';

/** A policy with the objects of a cluster, and what it was asked to validate. */
class Subject {
  readonly objects = new Map<string, LookupResult>();
  readonly validated: string[] = [];
  readonly #settings: ParameterizedSettings;

  constructor(definition: Partial<ParametersDefinition> = {}, base = BY_RESOURCE) {
    this.#settings = new ParameterizedSettings({ ...base, ...definition }, SETTINGS);
  }

  put(place: string, object: JsonObject): void {
    this.objects.set(place, { state: 'found', object });
  }

  resolve(
    namespace = 'tool-a',
    verdict: (settings: string) => SettingsResult = () => ({ valid: true }),
  ): EffectiveSettings {
    const objects: ObjectLookup = {
      find: ({ kind, namespace: within, name }) =>
        this.objects.get(within === undefined ? `${kind} ${name}` : `${kind} ${within}/${name}`) ?? { state: 'absent' },
    };
    return this.#settings.resolve({
      namespace,
      objects,
      validate: (settings) => {
        this.validated.push(settings);
        return verdict(settings);
      },
    });
  }
}

const profile = (uid: JsonObject[string]): JsonObject => ({ spec: { uid } });

describe('the settings of a namespace', () => {
  it('are those of the policy, with the values of its parameters', () => {
    const subject = new Subject();
    subject.put('ToolProfile tool-a/profile', profile(5));
    assert.deepEqual(subject.resolve(), { kind: 'settings', settingsJson: '{"mode":"strict","uid":5}' });
  });

  it('come from a fixed namespace, if the policy names one', () => {
    const { apiVersion, kind, name } = { apiVersion: 'example.com/v1', kind: 'ToolProfile', name: 'profile' };
    const subject = new Subject({ from: { resource: { apiVersion, kind, name, namespace: 'shared' } } });
    subject.put('ToolProfile shared/profile', profile(9));
    assert.deepEqual(subject.resolve(''), { kind: 'settings', settingsJson: '{"mode":"strict","uid":9}' });
  });

  it('come from listed annotations of the namespace, whose missing ones are null', () => {
    const subject = new Subject({}, BY_NAMESPACE);
    subject.put('Namespace tool-a', { metadata: { annotations: { 'example.com/uid': '6', other: 'x' }, labels: {} } });
    assert.deepEqual(subject.resolve(), { kind: 'settings', settingsJson: '{"mode":"strict","uid":6}' });
    subject.put('Namespace tool-a', { metadata: { annotations: { 'example.com/uid': null }, labels: {} } });
    assert.deepEqual(subject.resolve(), {
      kind: 'refused',
      message:
        'there are no parameters: the namespace "tool-a" has none of the annotations example.com/uid and the labels tier',
      isMissing: true,
      isOfNamespace: true,
    });
  });

  it('may depend on labels of the namespace', () => {
    const settingsExpression = "{'uid': namespaceObject.metadata.labels['tier'] == 'gold' ? 1 : params.spec.uid}";
    const subject = new Subject({ settingsExpression });
    subject.put('ToolProfile tool-a/profile', profile(5));
    assert.deepEqual(subject.resolve(), {
      kind: 'refused',
      message: 'there are no parameters: the namespace "tool-a" does not exist',
    });
    subject.put('Namespace tool-a', { metadata: { labels: { tier: 'gold' } } });
    assert.deepEqual(subject.resolve(), { kind: 'settings', settingsJson: '{"mode":"strict","uid":1}' });
  });

  it('follow a change of the parameters', () => {
    const subject = new Subject();
    subject.put('ToolProfile tool-a/profile', profile(5));
    subject.resolve();
    subject.put('ToolProfile tool-a/profile', profile(6));
    assert.deepEqual(subject.resolve(), { kind: 'settings', settingsJson: '{"mode":"strict","uid":6}' });
  });

  it('are validated once for all namespaces that have the same', () => {
    const subject = new Subject();
    for (const namespace of ['tool-a', 'tool-b', 'tool-c', 'tool-a']) {
      subject.put(`ToolProfile ${namespace}/profile`, profile(5));
      subject.resolve(namespace);
    }
    assert.deepEqual(subject.validated, ['{"mode":"strict","uid":5}']);
  });

  it('wait for an object that is not known yet', () => {
    const subject = new Subject();
    subject.objects.set('ToolProfile tool-a/profile', { state: 'unknown' });
    assert.throws(() => subject.resolve(), UnknownObject);
  });
});

describe('missing parameters', () => {
  const message = 'there are no parameters: ToolProfile tool-a/profile does not exist';
  const cases: readonly [ParametersDefinition['notFound'], EffectiveSettings][] = [
    ['Deny', { kind: 'refused', message, isMissing: true, isOfNamespace: true }],
    ['Allow', { kind: 'allowed' }],
    ['UseDefaults', { kind: 'settings', settingsJson: SETTINGS }],
  ];
  for (const [notFound, answer] of cases) {
    it(`are answered by notFound: ${notFound}`, () => {
      assert.deepEqual(new Subject({ notFound }).resolve(), answer);
    });

    it(`of a request without a namespace are answered by notFound: ${notFound}`, () => {
      const message = 'there are no parameters: the request has no namespace';
      const expected = answer.kind === 'refused' ? { kind: 'refused', message, isMissing: true } : answer;
      assert.deepEqual(new Subject({ notFound }).resolve(''), expected);
      assert.deepEqual(new Subject({ notFound }, BY_NAMESPACE).resolve(''), expected);
    });

    it(`that cannot be read are refused with notFound: ${notFound}`, () => {
      const subject = new Subject({ notFound });
      subject.objects.set('ToolProfile tool-a/profile', { state: 'unreadable', reason: 'no answer' });
      assert.deepEqual(subject.resolve(), {
        kind: 'refused',
        message: 'the parameters are not known: ToolProfile tool-a/profile cannot be read: no answer',
      });
    });
  }
});

describe('invalid parameters', () => {
  const invalid: readonly [title: string, object: JsonObject, verdict: SettingsVerdict, problem: RegExp][] = [
    ['of the wrong shape', { spec: [] }, { valid: true }, /settingsExpression failed/],
    [
      'that the policy refuses',
      profile(-1),
      { valid: false, message: 'uid is negative' },
      /are invalid: uid is negative$/,
    ],
  ];
  for (const [title, object, verdict, problem] of invalid) {
    it(`${title} are refused, with their place`, () => {
      const subject = new Subject();
      subject.put('ToolProfile tool-a/profile', object);
      const answer = subject.resolve('tool-a', () => verdict);
      assert.ok(answer.kind === 'refused');
      assert.match(answer.message, /^the parameters of ToolProfile tool-a\/profile are invalid: /);
      assert.match(answer.message, problem);
    });

    it(`${title} keep the last valid settings of their namespace, if the policy wants that`, () => {
      const subject = new Subject({ onInvalid: 'KeepLast' });
      subject.put('ToolProfile tool-a/profile', profile(5));
      subject.resolve();
      subject.put('ToolProfile tool-a/profile', object);
      subject.put('ToolProfile tool-b/profile', object);
      assert.deepEqual(
        subject.resolve('tool-a', () => verdict),
        {
          kind: 'settings',
          settingsJson: '{"mode":"strict","uid":5}',
        },
      );
      assert.equal(subject.resolve('tool-b', () => verdict).kind, 'refused');
    });
  }

  it('keep the settings before the change, in a worker that evaluates the namespace first', () => {
    const object = { spec: [] };
    for (const onInvalid of ['KeepLast', 'Deny'] as const) {
      const subject = new Subject({ onInvalid });
      subject.objects.set('ToolProfile tool-a/profile', { state: 'found', object, previous: profile(5) });
      assert.equal(subject.resolve().kind, onInvalid === 'KeepLast' ? 'settings' : 'refused');
    }
  });

  it('are not those whose validation is postponed: they are validated with a later request', () => {
    for (const onInvalid of ['KeepLast', 'Deny'] as const) {
      const subject = new Subject({ onInvalid });
      subject.put('ToolProfile tool-a/profile', profile(5));
      subject.resolve();
      subject.put('ToolProfile tool-a/profile', profile(6));
      const postponed = subject.resolve('tool-a', () => ({ valid: false, message: 'later', isPostponed: true }));
      assert.equal(postponed.kind, onInvalid === 'KeepLast' ? 'settings' : 'refused');
      assert.deepEqual(subject.resolve(), { kind: 'settings', settingsJson: '{"mode":"strict","uid":6}' });
    }
  });

  it('that are deleted count as missing, also with KeepLast', () => {
    const subject = new Subject({ onInvalid: 'KeepLast' });
    subject.put('ToolProfile tool-a/profile', profile(5));
    subject.resolve();
    subject.objects.clear();
    assert.equal(subject.resolve().kind, 'refused');
  });
});
