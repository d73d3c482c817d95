// Sends requests to a served trial: at their due times (pairs), or as fast as they are answered (many).
// Reads one object from standard input and writes one to standard output; no packages are needed.
import { Agent, request } from "node:http";
import { readFileSync } from "node:fs";

const given = JSON.parse(readFileSync(0, "utf8"));
const agent = new Agent({ keepAlive: true, maxSockets: given.connections });
const now = () => Number(process.hrtime.bigint()) / 1e6;
const later = (ms) => new Promise((done) => setTimeout(done, ms));

function send(method, path, role, key, body) {
  const content = body === undefined ? "" : JSON.stringify(body);
  const headers = { Authorization: `Bearer ${given.tokens[role]}`, "Content-Length": Buffer.byteLength(content) };
  if (body !== undefined) Object.assign(headers, { "Idempotency-Key": key, "Content-Type": "application/json" });
  return new Promise((done) => {
    const sent = request({ host: "127.0.0.1", port: given.port, method, path, headers, agent }, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("end", () => done([answer.statusCode, Buffer.concat(parts).toString()]));
    });
    sent.on("error", () => done([0, ""]));
    sent.end(content);
  });
}

const found = { times: [], late: [], statuses: {}, assigned: [], recorded: [] };

function note(status, due) {
  found.statuses[status] = (found.statuses[status] ?? 0) + 1;
  if (due !== undefined) found.times.push(now() - due);
}

async function assign(unit, due) {
  const [status, text] = await send("POST", "/v1/assignments", "assigner", `a ${unit}`, { unit });
  note(status, due);
  if (status !== 200) return null;
  const { id, arm } = JSON.parse(text);
  found.assigned.push([unit, id, arm ?? null]);
  return id;
}

async function record(unit, decision, due) {
  const reward = decision % 2;
  const [status] = await send("POST", "/v1/outcomes", "recorder", `r ${unit}`, { decision, reward });
  note(status, due);
  if (status === 200) found.recorded.push([decision, reward]);
}

// The outcome of a participant is due half a second after the assignment was; if that is not answered by
// then, the outcome is sent late, and its time counts from when it was due.
async function pair(unit, due) {
  found.late.push(now() - due);
  const id = await assign(unit, due);
  const then = due + given.gap;
  if (then > now()) await later(then - now());
  if (id !== null) await record(unit, id, Math.max(then, due));
}

async function pairs() {
  const total = Math.round(given.rate * given.seconds), begun = now(), all = [];
  for (let number = 0; number < total; ) {
    const due = begun + (1e3 * number) / given.rate;
    if (due > now()) {
      await later(due - now());
      continue;
    }
    all.push(pair(`${given.name} ${number}`, due));
    number += 1;
  }
  await Promise.all(all);
  found.seconds = (now() - begun) / 1e3;
}

// Of ten requests of a client, four assign, four record, one asks for the status and one for events.
async function client(number, most) {
  let waiting = [];
  for (let sent = 0; sent < most; sent += 1) {
    const place = sent % 10;
    if (place === 4 || place === 9) {
      const path = place === 4 ? "/v1/status" : `/v1/events?limit=20&after=${found.assigned.length}`;
      note((await send("GET", path, "monitor"))[0]);
    } else if (place % 2 === 0 || waiting.length === 0) {
      const unit = `${given.name} ${number} ${sent}`, id = await assign(unit);
      if (id !== null) waiting.push([unit, id]);
    } else {
      await record(...waiting.shift());
    }
  }
}

async function many() {
  const begun = now(), share = Math.floor(given.requests / given.clients);
  const more = given.requests - share * given.clients;
  const all = Array.from({ length: given.clients }, (_, number) => client(number, share + (number < more ? 1 : 0)));
  await Promise.all(all);
  found.seconds = (now() - begun) / 1e3;
}

await (given.rate ? pairs() : many());
agent.destroy();
process.stdout.write(JSON.stringify(found));
