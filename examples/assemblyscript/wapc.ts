/**
 * The waPC calling convention as Kubewarden policies use it.
 *
 * A policy exports `__guest_call` and hands it to `serve`, together with its two functions.
 */
import { Json, parseJson } from './json';

export { Json } from './json';

@external('wapc', '__guest_request')
declare function guestRequest(operation: usize, payload: usize): void;
@external('wapc', '__guest_response')
declare function guestResponse(answer: usize, length: usize): void;
@external('wapc', '__guest_error')
declare function guestError(text: usize, length: usize): void;
@external('wapc', '__host_call')
declare function hostCallRaw(
  binding: usize,
  bindingLength: usize,
  namespace: usize,
  namespaceLength: usize,
  operation: usize,
  operationLength: usize,
  payload: usize,
  payloadLength: usize,
): i32;
@external('wapc', '__host_response_len')
declare function hostResponseLength(): i32;
@external('wapc', '__host_response')
declare function hostResponse(into: usize): void;
@external('wapc', '__host_error_len')
declare function hostErrorLength(): i32;
@external('wapc', '__host_error')
declare function hostError(into: usize): void;
@external('wapc', '__console_log')
declare function consoleLog(text: usize, length: usize): void;

/** What the policy is asked: the request of the API server, and the settings from the policy's definition. */
export class Question {
  constructor(
    public request: Json,
    public settings: Json,
  ) {}
}

/** What a call to the host gave back: its answer, or the text of its error. */
export class HostAnswer {
  constructor(
    public ok: bool,
    public text: string,
  ) {}
}

/** The verdict that admits the request. */
export function accept(): Json {
  return Json.object().set('accepted', Json.bool(true));
}

/** The verdict that rejects the request; people see the message. */
export function reject(message: string): Json {
  return Json.object().set('accepted', Json.bool(false)).set('message', Json.string(message));
}

/** The verdict that admits the request with the object changed to this one. */
export function mutate(object: Json): Json {
  return accept().set('mutated_object', object);
}

export function validSettings(): Json {
  return Json.object().set('valid', Json.bool(true));
}

export function invalidSettings(message: string): Json {
  return Json.object().set('valid', Json.bool(false)).set('message', Json.string(message));
}

/** Writes a line to the host's log. */
export function log(text: string): void {
  const bytes = String.UTF8.encode(text);
  consoleLog(changetype<usize>(bytes), bytes.byteLength);
}

/** Reads JSON that the host gave; a null value when it is none. */
export function parse(text: string): Json {
  const json = parseJson(text);
  return json === null ? Json.nothing() : json;
}

/** Calls a capability of the host, such as binding `kubewarden`, namespace `kubernetes`, operation `get_resource`. */
export function hostCall(binding: string, namespace: string, operation: string, payload: string): HostAnswer {
  const b = String.UTF8.encode(binding);
  const n = String.UTF8.encode(namespace);
  const o = String.UTF8.encode(operation);
  const p = String.UTF8.encode(payload);
  const status = hostCallRaw(
    changetype<usize>(b),
    b.byteLength,
    changetype<usize>(n),
    n.byteLength,
    changetype<usize>(o),
    o.byteLength,
    changetype<usize>(p),
    p.byteLength,
  );
  if (status == 1) {
    const answer = new ArrayBuffer(hostResponseLength());
    hostResponse(changetype<usize>(answer));
    return new HostAnswer(true, String.UTF8.decode(answer));
  }
  const error = new ArrayBuffer(hostErrorLength());
  hostError(changetype<usize>(error));
  return new HostAnswer(false, String.UTF8.decode(error));
}

/** Answers one call of the host; gives 1 when there is an answer and 0 when the host was given an error text. */
export function serve(
  operationLength: i32,
  payloadLength: i32,
  validate: (question: Question) => Json,
  validateSettings: (settings: Json) => Json,
): i32 {
  const operationBytes = new ArrayBuffer(operationLength);
  const payloadBytes = new ArrayBuffer(payloadLength);
  guestRequest(changetype<usize>(operationBytes), changetype<usize>(payloadBytes));
  const operation = String.UTF8.decode(operationBytes);
  if (operation == 'protocol_version') {
    return answer('"v1"');
  }
  const payload = parseJson(String.UTF8.decode(payloadBytes));
  if (payload === null) {
    return fail('the payload of ' + operation + ' is not JSON that this policy can read');
  }
  if (operation == 'validate') {
    return answer(validate(new Question(payload.get('request'), payload.get('settings'))).toString());
  }
  if (operation == 'validate_settings') {
    return answer(validateSettings(payload).toString());
  }
  return fail('this policy has no operation ' + operation);
}

function answer(text: string): i32 {
  const bytes = String.UTF8.encode(text);
  guestResponse(changetype<usize>(bytes), bytes.byteLength);
  return 1;
}

function fail(text: string): i32 {
  const bytes = String.UTF8.encode(text);
  guestError(changetype<usize>(bytes), bytes.byteLength);
  return 0;
}

/** What AssemblyScript calls when an assertion or a bounds check of the policy fails: says where, then traps. */
export function onAbort(message: string | null, file: string | null, line: u32, column: u32): void {
  const what = message === null ? 'aborted' : message;
  const where = file === null ? '' : ' (' + file + ':' + line.toString() + ':' + column.toString() + ')';
  log(what + where);
  unreachable();
}
