import { daysInMonth } from './civil-time.ts';

/** `2006-01-02`: the format `date` of https://pkg.go.dev/k8s.io/kube-openapi/pkg/validation/strfmt. */
export function isDate(text: string): boolean {
  const [year, month = 0, day = 0] = (/^(\d{4})-(\d{2})-(\d{2})$/.exec(text)?.slice(1) ?? []).map(Number);
  return year !== undefined && day >= 1 && day <= daysInMonth(year, month);
}

/** `2006-01-02T15:04:05.999Z`: the format `date-time` of the same package. */
export function isDateTime(text: string): boolean {
  const [date = '', time = ''] = text.toLowerCase().split('t');
  const match = /^(\d{2}):(\d{2}):(\d{2})(?:.\d+)?(?:z|[+-]\d{2}:\d{2})$/u.exec(time);
  if (match === null || !isDate(date)) {
    return false;
  }
  const [, hour = '', minute = '', second = ''] = match;
  return hour <= '23' && minute <= '59' && second <= '59';
}
