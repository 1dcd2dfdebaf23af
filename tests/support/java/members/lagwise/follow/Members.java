package lagwise.follow;

import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

import lagwise.control.DamagedException;
import lagwise.control.Fields;
import lagwise.control.Json;

import sun.misc.Signal;

/**
 * Consumers for the tests: many in one process, told on standard input what to do, or one that is a process of its own.
 *
 *   {"do":"start","who":"a","following":true,"topics":{"t":""},"config":{"bootstrap.servers":"…"}}
 *   {"do":"stop","who":"a"}   {"do":"rejoin","who":"a"}
 *
 * What each of them sees is one line of JSON: see {@link Member}. As a process of its own it takes the first of these
 * lines and the name of a file as arguments; SIGTERM ends it, SIGHUP makes it stop itself just before its next commit.
 */
public final class Members {
    private Members() {
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 2) {
            try (OutputStream log = new FileOutputStream(arguments[1], true)) {
                alone(parsed(arguments[0]), log);
            }
        } else {
            OutputStream out = System.out;
            System.setOut(System.err);
            together(out);
        }
    }

    private static void alone(Fields start, OutputStream log) throws Exception {
        Member member = new Member(start, log);
        Signal.handle(new Signal("TERM"), signal -> member.end());
        Signal.handle(new Signal("HUP"), signal -> member.stopBeforeCommit());
        member.start();
        member.join();
    }

    private static void together(OutputStream out) throws IOException, InterruptedException, DamagedException {
        Map<String, Member> members = new HashMap<>();
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            Fields order = parsed(line);
            String who = order.text("who");
            switch (order.text("do")) {
                case "start" -> {
                    members.put(who, new Member(order, out));
                    members.get(who).start();
                }
                case "stop" -> members.get(who).end();
                case "rejoin" -> members.get(who).rejoin();
                default -> throw new DamagedException("no such order");
            }
        }
        for (Member member : members.values()) {
            member.end();
            member.join();
        }
    }

    private static Fields parsed(String line) throws DamagedException {
        return Json.parse(line.getBytes(StandardCharsets.UTF_8));
    }
}
