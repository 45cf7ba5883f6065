import type { AttributeValue } from '@aws-sdk/client-dynamodb';

/** An item in DynamoDB's attribute format. */
export type Item = Record<string, AttributeValue>;

/** The parts of a request that define the placeholders of an expression. */
export interface ExpressionNames {
  ExpressionAttributeNames?: Record<string, string>;
  ExpressionAttributeValues?: Record<string, AttributeValue>;
}

type Scalar = string | number | boolean | undefined;
/** Evaluates an expression on one item, with the names and values of its request. */
type Judge<T> = (item: Item | undefined, names: ExpressionNames) => T;

/**
 * Evaluates a DynamoDB condition on one item: comparisons, BETWEEN, IN, AND, OR, NOT, parentheses, attribute_exists, attribute_not_exists,
 * begins_with and contains. Throws on anything else, like the service.
 * Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html
 */
export function holds(expression: string, item: Item | undefined, names: ExpressionNames): boolean {
  return judgeOf(expression)(item, names);
}

const judges = new Map<string, Judge<boolean>>();

/** Parsed expressions are cached: the functions send few different ones, and each of them often. */
function judgeOf(expression: string): Judge<boolean> {
  let judge = judges.get(expression);
  if (!judge) {
    judge = new Parser(expression.match(/<=|>=|<>|[=<>(),]|[#:]?[\w.-]+/g) ?? []).parse();
    judges.set(expression, judge);
  }
  return judge;
}

class Parser {
  private at = 0;

  constructor(private readonly words: readonly string[]) {}

  parse(): Judge<boolean> {
    const judge = this.either();
    if (this.at < this.words.length) throw new Error(`ValidationException: unexpected ${this.words[this.at]}`);
    return judge;
  }

  private either(): Judge<boolean> {
    const parts = [this.both()];
    while (this.take('OR')) parts.push(this.both());
    const [only, ...others] = parts;
    if (only && others.length === 0) return only;
    return (item, names) => parts.some((part) => part(item, names));
  }

  private both(): Judge<boolean> {
    const parts = [this.one()];
    while (this.take('AND')) parts.push(this.one());
    const [only, ...others] = parts;
    if (only && others.length === 0) return only;
    return (item, names) => parts.every((part) => part(item, names));
  }

  private one(): Judge<boolean> {
    if (this.take('NOT')) {
      const negated = this.one();
      return (item, names) => !negated(item, names);
    }
    if (this.take('(')) {
      const inner = this.either();
      this.need(')');
      return inner;
    }
    return this.words[this.at + 1] === '(' ? this.call() : this.comparison();
  }

  private call(): Judge<boolean> {
    const name = this.next();
    this.need('(');
    const value = attributeOf(this.next());
    const argument = this.take(',') ? scalarOf(this.next()) : () => undefined;
    this.need(')');
    switch (name) {
      case 'attribute_exists':
        return (item, names) => value(item, names) !== undefined;
      case 'attribute_not_exists':
        return (item, names) => value(item, names) === undefined;
      case 'begins_with':
        return (item, names) => value(item, names)?.S?.startsWith(String(argument(item, names))) ?? false;
      case 'contains':
        return (item, names) => value(item, names)?.S?.includes(String(argument(item, names))) ?? false;
      default:
        throw new Error(`ValidationException: the simulation does not know ${name}()`);
    }
  }

  private comparison(): Judge<boolean> {
    const left = scalarOf(this.next());
    if (this.take('BETWEEN')) {
      const least = scalarOf(this.next());
      this.need('AND');
      const most = scalarOf(this.next());
      return (item, names) => {
        const value = left(item, names);
        return compare(value, '>=', least(item, names)) && compare(value, '<=', most(item, names));
      };
    }
    if (this.take('IN')) {
      this.need('(');
      const list = [scalarOf(this.next())];
      while (this.take(',')) list.push(scalarOf(this.next()));
      this.need(')');
      return (item, names) => {
        const value = left(item, names);
        return list.some((one) => one(item, names) === value);
      };
    }
    const operator = this.next();
    const right = scalarOf(this.next());
    return (item, names) => compare(left(item, names), operator, right(item, names));
  }

  private next(): string {
    const word = this.words[this.at++];
    if (word === undefined) throw new Error('ValidationException: the expression ends too early');
    return word;
  }

  private take(word: string): boolean {
    if (this.words[this.at] !== word) return false;
    this.at += 1;
    return true;
  }

  private need(word: string): void {
    if (!this.take(word)) throw new Error(`ValidationException: expected ${word}, got ${this.words[this.at]}`);
  }
}

function attributeOf(word: string): Judge<AttributeValue | undefined> {
  if (!word.startsWith('#')) return (item) => item?.[word];
  return (item, names) => {
    const name = names.ExpressionAttributeNames?.[word];
    return name === undefined ? undefined : item?.[name];
  };
}

function scalarOf(word: string): Judge<Scalar> {
  const attribute: Judge<AttributeValue | undefined> = word.startsWith(':')
    ? (_item, names) => names.ExpressionAttributeValues?.[word]
    : attributeOf(word);
  return (item, names) => {
    const value = attribute(item, names);
    return value?.N === undefined ? (value?.S ?? value?.BOOL) : Number(value.N);
  };
}

function compare(left: Scalar, operator: string, right: Scalar): boolean {
  if (left === undefined || right === undefined) return operator === '<>' && left !== right;
  switch (operator) {
    case '=':
      return left === right;
    case '<>':
      return left !== right;
    case '<':
      return left < right;
    case '<=':
      return left <= right;
    case '>':
      return left > right;
    case '>=':
      return left >= right;
    default:
      throw new Error(`ValidationException: the simulation does not know the operator ${operator}`);
  }
}
