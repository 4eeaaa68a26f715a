import type { Chapter } from '../../steps/step.ts';

/** A policy of `builtin:cel` with one expression, evaluated for a pod. */
function evaluated(expression: string): string {
  const settings = JSON.stringify({ validations: [{ expression }] });
  return `portcullis run builtin:cel -r pod.yaml --settings-json '${settings}'`;
}

export const LANGUAGE: Chapter = {
  title: '1.6 exactness of the language',
  steps: [
    {
      shows: 'orValue of a plain value is the value before 1.37, with a warning',
      sh: 'portcullis run plain-or-value.yaml -r pod.yaml --kubernetes-version 1.36',
      prints: [/^warning: .*an error since Kubernetes 1\.37: write object\.\?kind\.orValue/m, /"allowed":true/],
    },
    {
      shows: 'and an error from 1.37 on',
      sh: 'portcullis run plain-or-value.yaml -r pod.yaml --kubernetes-version 1.37',
      prints: [/"allowed":false.*resulted in error: no such overload/],
    },
    {
      shows: '--kubernetes-version refuses what its API servers do not allow in new expressions yet',
      sh: 'portcullis run addresses.yaml -r pod.yaml --kubernetes-version 1.30',
      code: 1,
      prints: [/Kubernetes allows 'isIP' in new expressions since 1\.31/],
    },
    {
      shows: 'and takes it from the next version on',
      sh: 'portcullis run addresses.yaml -r pod.yaml --kubernetes-version 1.31',
      prints: [/"allowed":true/],
    },
    {
      shows: 'policies of API servers are evaluated for webhook configurations',
      sh: 'portcullis run never.yaml -r webhook.yaml',
      prints: [/"allowed":false/],
    },
    {
      shows: 'and never for reviews',
      sh: 'portcullis test -p never.yaml webhook.yaml review.yaml -v',
      code: 1,
      prints: [/^ValidatingWebhookConfiguration other +vap\/never +fail$/m, /^TokenReview one +vap\/never +skip /m],
    },
    {
      shows: 'of several failed audit validations, the first annotation is kept before 1.37',
      sh: 'portcullis run audit.yaml -r pod.yaml --kubernetes-version 1.36',
      prints: [/"message\\":\\"first\\"/],
      omits: /"message\\":\\"second\\"/,
    },
    {
      shows: 'and all from 1.37 on',
      sh: 'portcullis run audit.yaml -r pod.yaml --kubernetes-version 1.37',
      prints: [/"message\\":\\"first\\".*"message\\":\\"second\\"/],
    },
    {
      shows: 'integers above 2^53 keep their digits',
      sh: `portcullis run builtin:cel -r big.yaml --resource widgets \
        --settings-json '{"validations": [{"expression": "false", "messageExpression": "string(object.spec.size)"}]}'`,
      prints: [/"message":"9007199254740993"/],
    },
    {
      shows: 'messages of protobuf and keys that are no strings are values',
      sh: evaluated(
        'google.protobuf.Int32Value{value: 1} == 1 && {1: "one"}[1] == "one" && google.protobuf.Timestamp{seconds: 1}.getSeconds() == 1',
      ),
      prints: [/"allowed":true/],
    },
    {
      shows: 'a paramKind that nothing serves is the error of an API server',
      sh: 'portcullis run unserved-params.yaml -r pod.yaml',
      prints: [/failed to find resource referenced by paramKind: 'example\.com\/v1, Kind=Limit'/],
      omits: /no policy with a binding is for this request/,
    },
    {
      shows:
        'a suite has several conditions on a message, a folder of manifests, a binding without a policy, old reviews',
      sh: 'portcullis test points.portcullis-test.yml',
      prints: [/^note: .*the binding "gone" has no effect/m, /^✔ 4 of 4 cases passed/m],
    },
    {
      shows: 'the JSON of a suite has the responses of passed cases',
      sh: 'portcullis test points.portcullis-test.yml -o json 2> /dev/null',
      prints: [/"status": "passed",\s+"response": \{\s+"allowed": false,/],
    },
    {
      shows: 'two cases of one name are refused, with the place',
      sh: 'portcullis test same-names.portcullis-test.yml',
      code: 2,
      prints: [/same-names\.portcullis-test\.yml:6:5 .*two cases are named "too many"/],
    },
  ],
};
