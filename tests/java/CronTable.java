import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.DayOfWeek;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.temporal.TemporalAdjusters;
import java.time.zone.ZoneRules;
import java.time.zone.ZoneRulesProvider;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * The slots of cron schedules by java.time, to hold Tocsin's own against.
 *
 * <p>Shares nothing with it: every local second or minute of a window is tried against the fields,
 * and ZoneRules says whether it exists, once or twice. Reads lines of cron, zone, gap, overlap,
 * exclude, from, to (tab-separated, exclude with commas, instants in UTC), and writes each with its
 * slots. What follows these columns is not read, so that a table with slots can be made again:
 *
 * <pre>java CronTable.java cron_table.tsv > new.tsv && mv new.tsv cron_table.tsv</pre>
 */
public final class CronTable {
  private static final int GIVEN = 7;
  private static final List<String> MONTHS =
      List.of("", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC");
  private static final List<String> DAYS = List.of("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT");

  public static void main(String[] arguments) throws IOException {
    System.err.println("tz " + ZoneRulesProvider.getVersions("UTC").lastEntry().getKey());
    StringBuilder table = new StringBuilder();
    for (String line : Files.readAllLines(Path.of(arguments[0]), StandardCharsets.UTF_8)) {
      if (line.isBlank() || line.startsWith("#")) {
        table.append(line).append('\n');
        continue;
      }
      String[] given = line.split("\t", -1);
      String slots =
          slots(given).entrySet().stream()
              .map(slot -> slot.getKey() + " " + slot.getValue())
              .collect(Collectors.joining(", "));
      table.append(String.join("\t", List.of(given).subList(0, GIVEN))).append('\t');
      table.append(slots).append('\n');
    }
    System.out.write(table.toString().getBytes(StandardCharsets.UTF_8));
    System.out.flush();
  }

  private static Map<Instant, String> slots(String[] given) {
    String[] fields = given[0].split(" ");
    boolean bySecond = fields.length == 6;
    String[] cron = bySecond ? fields : ("0 " + given[0]).split(" ");
    ZoneRules rules = ZoneId.of(given[1]).getRules();
    Instant from = Instant.parse(given[5]);
    Instant to = Instant.parse(given[6]);
    Map<Instant, String> found = new TreeMap<>();
    LocalDateTime end = LocalDateTime.ofInstant(to, ZoneOffset.UTC).plusDays(2);
    LocalDateTime local = LocalDateTime.ofInstant(from, ZoneOffset.UTC).minusDays(2).withSecond(0);
    while (local.isBefore(end)) {
      if (matches(cron, local) && !List.of(given[4].split(",")).contains(local.toLocalDate().toString())) {
        add(found, rules, local, given[2], given[3]);
      }
      local = bySecond ? local.plusSeconds(1) : local.plusMinutes(1);
    }
    found.keySet().removeIf(slot -> slot.isBefore(from) || !slot.isBefore(to));
    return found;
  }

  private static void add(
      Map<Instant, String> found, ZoneRules rules, LocalDateTime local, String gap, String overlap) {
    List<ZoneOffset> offsets = rules.getValidOffsets(local);
    if (offsets.isEmpty()) {
      if (gap.equals("after")) {
        found.put(rules.getTransition(local).getInstant(), "gap");
      }
    } else if (offsets.size() == 1) {
      found.putIfAbsent(local.toInstant(offsets.get(0)), "normal");
    } else {
      if (!overlap.equals("second")) {
        found.putIfAbsent(local.toInstant(offsets.get(0)), "overlap");
      }
      if (!overlap.equals("first")) {
        found.putIfAbsent(local.toInstant(offsets.get(1)), "overlap");
      }
    }
  }

  private static boolean matches(String[] cron, LocalDateTime local) {
    return in(cron[0], local.getSecond(), 0, 59, List.of())
        && in(cron[1], local.getMinute(), 0, 59, List.of())
        && in(cron[2], local.getHour(), 0, 23, List.of())
        && in(cron[4], local.getMonthValue(), 1, 12, MONTHS)
        && onDay(cron[3], cron[5], local.toLocalDate());
  }

  private static boolean onDay(String ofMonth, String ofWeek, LocalDate day) {
    boolean month = inMonth(ofMonth, day);
    boolean week = inWeek(ofWeek, day);
    return ofMonth.startsWith("*") || ofWeek.startsWith("*") ? month && week : month || week;
  }

  private static boolean inMonth(String field, LocalDate day) {
    LocalDate last = day.with(TemporalAdjusters.lastDayOfMonth());
    if (field.equals("L")) {
      return day.equals(last);
    }
    if (field.equals("LW")) {
      while (last.getDayOfWeek() == DayOfWeek.SATURDAY || last.getDayOfWeek() == DayOfWeek.SUNDAY) {
        last = last.minusDays(1);
      }
      return day.equals(last);
    }
    return in(field, day.getDayOfMonth(), 1, 31, List.of());
  }

  private static boolean inWeek(String field, LocalDate day) {
    int sundayZero = day.getDayOfWeek().getValue() % 7;
    if (field.endsWith("L")) {
      LocalDate last = day.with(TemporalAdjusters.lastInMonth(day.getDayOfWeek()));
      return number(field.substring(0, field.length() - 1), DAYS) % 7 == sundayZero && day.equals(last);
    }
    if (field.contains("#")) {
      String[] which = field.split("#");
      return number(which[0], DAYS) % 7 == sundayZero
          && (day.getDayOfMonth() - 1) / 7 + 1 == Integer.parseInt(which[1]);
    }
    return in(field, sundayZero, 0, 7, DAYS) || sundayZero == 0 && in(field, 7, 0, 7, DAYS);
  }

  private static boolean in(String field, int value, int min, int max, List<String> names) {
    for (String term : field.split(",")) {
      String[] stepped = term.split("/");
      int step = stepped.length > 1 ? Integer.parseInt(stepped[1]) : 1;
      int low = min;
      int high = max;
      if (!stepped[0].equals("*")) {
        String[] ends = stepped[0].split("-");
        low = number(ends[0], names);
        high = ends.length > 1 ? number(ends[1], names) : stepped.length > 1 ? max : low;
      }
      if (low <= value && value <= high && (value - low) % step == 0) {
        return true;
      }
    }
    return false;
  }

  private static int number(String text, List<String> names) {
    return names.contains(text) ? names.indexOf(text) : Integer.parseInt(text);
  }
}
